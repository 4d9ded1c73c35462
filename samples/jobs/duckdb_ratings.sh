#!/bin/bash
# Packs ratings that DuckDB reads, here: bash duckdb_ratings.sh 'ratings/*.parquet' FOLDER PARTS --values u8:0.5 [FLAG …]
# DuckDB groups them by user into PARTS files and lists the items; each part is packed alone, and the packs are merged into
# FOLDER/all. FLAGs are those of pack-sparse for the parts: no split, no rule, which the SQL would have to know.
# DuckDB writes a file for each of its threads into each part's folder, without headers; they are put together here.
set -euo pipefail
source=${1:?INPUT} folder=${2:?FOLDER} parts=${3:?PARTS}
shift 3
mkdir -p "$folder"
duckdb <<SQL
CREATE VIEW ratings AS SELECT "user", item, rating FROM '$source';
COPY (SELECT "user", item, rating, hash("user") % $parts AS part FROM ratings)
  TO '$folder/parts' (FORMAT csv, HEADER false, PARTITION_BY (part));
COPY ($(sed '/^--/d' "$(dirname "$0")/items.sql")) TO '$folder/items.csv' (FORMAT csv, HEADER true);
SQL
for part in "$folder"/parts/part=*; do
  cat "$part"/*.csv >"$part.csv"
  pack-sparse "$part.csv" --header no --reuse-ids "$folder/items.csv" "$@" -o "$folder/packs/${part##*=}" --progress none
done
pack-merge "$folder/all" "$folder"/packs/*
