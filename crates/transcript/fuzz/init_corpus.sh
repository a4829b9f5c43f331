#!/usr/bin/env bash
# Copies the fixtures into the corpus folders that the fuzz targets start from.

set -euo pipefail
cd "$(dirname "$0")"

shopt -s nullglob
mkdir -p corpus/{examine,plan_apply,cut_literal}
count=0
for file in ../../../fixtures/*/*/in.jsonl ${TAILOR_STORIES_DIR:+"$TAILOR_STORIES_DIR"/*/*/in.jsonl}; do
    name=${file%/in.jsonl}
    name=$(basename "$(dirname "$(dirname "$name")")")/$(basename "$(dirname "$name")")/$(basename "$name")
    cp "$file" "corpus/examine/${name//\//-}"
    cp "$file" "corpus/plan_apply/${name//\//-}"
    count=$((count + 1))
done
# Unit and budgets, then a literal: escapes, pairs, lone surrogates, broken UTF-8, a marker.
printf '\0\x05\x03one\\ntwo\\nthree\\n\\u00e9\\ud83d\\ude00 end' >corpus/cut_literal/escapes
printf '\1\x04\x04\\ud83d\\ud83d\\ude00\\udc00\xf0\x9f\x98\x80' >corpus/cut_literal/surrogates
printf '\2\x02\x02ab\xff\xfe\x80\x80cd\\u12\\' >corpus/cut_literal/broken
printf '\0\x10\x08before\\n[tailor: 189 of 200 chars omitted; full text: tailor show 3f9a1c20]\\nafter' >corpus/cut_literal/marker
echo "$count fixtures copied"
