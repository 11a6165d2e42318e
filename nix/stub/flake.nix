# Stands for nixpkgs where there is no binary cache: every attribute of attrs.json and nothing else, builds nothing.
{
  description = "a stand-in for nixpkgs with recorded attributes";

  outputs =
    { self }:
    let
      system = "x86_64-linux";
      known = builtins.fromJSON (builtins.readFile ./attrs.json);
      fake =
        name: attrs:
        derivation (
          {
            inherit name system;
            builder = "/bin/sh";
          }
          // attrs
        );
      fakes = builtins.mapAttrs (name: _: fake name { });
      # Only what is recorded may be given a meaning here: a name that attrs.json lacks stays unknown.
      meant = names: meanings: fakes names // builtins.intersectAttrs names meanings;

      python = meant known.python {
        buildPythonPackage = attrs: fake attrs.pname attrs;
        toPythonModule = package: package;
      };
      packages = meant known.packages {
        fetchPypi = attrs: fake attrs.pname attrs;
        mkShell = attrs: fake "shell" attrs;
        python313 = fake "python" { } // {
          withPackages = choose: fake "python-with-packages" { paths = choose python; };
        };
        runCommand = name: attrs: script: fake name (attrs // { inherit script; });
        snakemake = fake "snakemake" { } // {
          override = { python3Packages }: fake "snakemake" { uses = [ python3Packages.jinja2 ]; };
        };
        stdenv.cc.cc.lib = fake "compiler-libraries" { };
        texliveSmall = fake "texlive" { } // {
          withPackages = choose: fake "texlive-with-packages" { paths = choose (fakes known.texlive); };
        };
        writeShellScriptBin = name: script: fake name { inherit script; };
      };
    in
    {
      legacyPackages.${system} = packages;
    };
}
