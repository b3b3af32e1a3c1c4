#!/bin/bash
# The build.sh of OSS-Fuzz for this project, with language go: builds all fuzz targets in the tree, found by name. OSS-Fuzz
# provides the command compile_native_go_fuzzer IMPORT-PATH FUNCTION NAME, and a copy of the module that may be changed. CI
# runs this script with a command of that name that checks that the function exists.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${OUT:-}" ]; then # in OSS-Fuzz's builder
  printf 'package digest\n\nimport _ "github.com/AdamKorcz/go-118-fuzz-build/testing"\n' >digest/registerfuzzdependency.go
  go mod tidy
fi
targets=0
for dir in $(git grep -lE '^func Fuzz[A-Z]' -- '*_test.go' | xargs -n 1 dirname | sort -u); do
  package=$(go list "./$dir")
  for target in $(git grep -hoE '^func Fuzz[A-Z][A-Za-z0-9_]*' -- ":(glob)$dir/*_test.go" | cut -d ' ' -f 2); do
    compile_native_go_fuzzer "$package" "$target" "$(basename "$dir")_$target"
    targets=$((targets + 1))
  done
done
echo "$targets fuzz targets"
