#!/bin/bash
# Writes ratings anew so that each user is whole in one file, as a plan needs them:
#   bash group_duckdb.sh 'ratings/*.parquet' FOLDER FILES     then: pack-sparse FOLDER/*.csv --header no --plan TASKS …
# DuckDB writes a file for each of its threads into each bucket's folder, without headers; they are put together here. The
# order of a user's ratings is lost: add a column of times where --duplicates or the split needs it.
set -euo pipefail
source=${1:?INPUT} folder=${2:?FOLDER} files=${3:?FILES}
duckdb -c "COPY (SELECT \"user\", item, rating, hash(\"user\") % $files AS bucket FROM '$source')
  TO '$folder' (FORMAT csv, HEADER false, PARTITION_BY (bucket))"
for bucket in "$folder"/bucket=*; do
  cat "$bucket"/*.csv >"$folder/${bucket##*=}.csv"
  rm -r "$bucket"
done
