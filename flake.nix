{
  description = "lossmap: where a hybrid retriever loses, stage by stage, and how we know";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      # The only system: nixpkgs' opensearch and the trec_eval wheel below exist for no other.
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};

      # What nixpkgs lacks, as data: nix/check.py compares it with requirements/*.txt.
      wheels = builtins.fromJSON (builtins.readFile ./nix/wheels.json);
      wheel =
        ps: spec:
        ps.buildPythonPackage {
          inherit (spec) pname version;
          format = "wheel";
          src = pkgs.fetchPypi {
            inherit (spec)
              pname
              version
              python
              abi
              platform
              hash
              ;
            format = "wheel";
            dist = spec.python;
          };
          # Without effect on a wheel of pure Python.
          nativeBuildInputs = [ pkgs.autoPatchelfHook ];
          buildInputs = [ pkgs.stdenv.cc.cc.lib ];
          dependencies = map (name: ps.${name}) spec.dependencies;
        };

      python = pkgs.python313.withPackages (
        ps:
        [
          ps.bm25s
          ps.hypothesis
          ps.jinja2
          ps.jsonschema
          ps.markdown-it-py
          ps.matplotlib
          ps.numpy
          ps.onnxruntime
          ps.opensearch-py
          ps.pandas
          ps.platformdirs
          ps.psycopg
          ps.pytest
          ps.pytest-timeout
          ps.pyyaml
          ps.rapidfuzz
          ps.requests
          ps.scikit-learn
          ps.scipy
          ps.sentence-transformers
          ps.tokenizers
          ps.tqdm
          # nixpkgs has it as a program with a Python of its own; the Snakefile imports lossmap.
          (ps.toPythonModule (pkgs.snakemake.override { python3Packages = ps; }))
        ]
        ++ map (wheel ps) wheels
      );

      # Rules call sys.executable, which must be the Python that has the packages.
      snakemake = pkgs.writeShellScriptBin "snakemake" ''
        exec ${python}/bin/python -m snakemake "$@"
      '';

      tex = pkgs.texliveSmall.withPackages (ps: [
        ps.booktabs
        ps.cleveref
        ps.latexmk
        ps.lm
        ps.microtype
        ps.natbib
      ]);

      # A writable copy of the tree in the sandbox, where tools look for a home and for caches.
      inTree =
        name: inputs: script:
        pkgs.runCommand name { nativeBuildInputs = inputs; } ''
          cp -r ${self} tree
          chmod -R u+w tree
          cd tree
          export HOME=$TMPDIR PYTHONPATH=$PWD/src
          ${script}
        '';

      # Committed results -> PDF and page: no engine, model, corpus or network.
      paper = inTree "lossmap-paper" [ snakemake python tex ] ''
        snakemake --cores 1 paper --config scale=shipped
        mkdir $out
        cp -r build/shipped/paper.pdf build/shipped/site $out
      '';

      shell =
        engine:
        pkgs.mkShell {
          packages = [
            snakemake
            python
            tex
            engine
            pkgs.postgresql_17
          ];
          shellHook = ''
            export PYTHONPATH=$PWD/src''${PYTHONPATH:+:$PYTHONPATH}
          '';
        };
    in
    {
      devShells.${system} = {
        default = shell pkgs.opensearch;
        # OpenSearch of the plain machine instead, assembled from the artefacts that lossmap pins.
        assembled = shell pkgs.jre_headless;
      };

      packages.${system} = {
        inherit paper;
        default = paper;
      };

      checks.${system} = {
        inherit paper;
        imports = inTree "lossmap-imports" [ python ] ''
          python -c 'import lossmap.cli, maven_artifact, onnxruntime, punkt, pytrec_eval, sentence_transformers'
          touch $out
        '';
      };

      formatter.${system} = pkgs.nixfmt-tree;
    };
}
