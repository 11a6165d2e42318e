"""Tables of one injection.

Ids of segments follow the order of insertion (start, end, turn), so that every read has a total order:
(start_time, end_time, segment_id).
"""

TABLES = """
CREATE TABLE {schema}.file (
    file_uuid      uuid PRIMARY KEY,
    corpus         text NOT NULL,
    meeting_id     text NOT NULL,
    title          text NOT NULL,
    domain         text NOT NULL,
    language       text NOT NULL,
    recorded_date  date,
    duration       double precision NOT NULL,
    timing_source  text NOT NULL,
    state_sha256   text NOT NULL,
    UNIQUE (corpus, meeting_id)
);
CREATE TABLE {schema}.speaker (
    speaker_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_uuid  uuid NOT NULL REFERENCES {schema}.file ON DELETE CASCADE,
    name       text NOT NULL,
    UNIQUE (file_uuid, name)
);
CREATE TABLE {schema}.segment (
    segment_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    segment_uuid uuid NOT NULL UNIQUE,
    file_uuid    uuid NOT NULL REFERENCES {schema}.file ON DELETE CASCADE,
    speaker_id   bigint NOT NULL REFERENCES {schema}.speaker ON DELETE CASCADE,
    start_time   double precision NOT NULL,
    end_time     double precision NOT NULL,
    content      text NOT NULL
);
CREATE INDEX segment_order ON {schema}.segment (file_uuid, start_time, end_time, segment_id);
CREATE UNIQUE INDEX segment_span ON {schema}.segment (file_uuid, start_time, end_time, md5(content));
"""
