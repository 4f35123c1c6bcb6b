#!/bin/sh
# Builds the operator of main.go: build.sh PROGRAM
#
# The controllers link every provider and generator through two packages that only import them, which is more than a
# thousand packages of cloud vendors. The build works on a copy of the release in which these two packages link less.
set -eu
program=$(realpath -m "$1")
cd "$(dirname "$0")"
module=github.com/external-secrets/external-secrets
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go mod download "$module"
cp -R "$(go list -m -f '{{.Dir}}' "$module")" "$folder/release"
chmod -R u+w "$folder/release"
cp register/provider.go "$folder/release/pkg/provider/register/register.go"
cp register/generator.go "$folder/release/pkg/generator/register/register.go"
cp go.mod go.sum main.go "$folder"
cd "$folder"
go mod edit -replace "$module=./release"
go build -trimpath -o "$program" .
