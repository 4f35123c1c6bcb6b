// Pins the release whose definitions the tests apply. Nothing of it is compiled, so do not run `go mod tidy`:
// it would remove the requirement.
module plumb.dev/tools/external-secrets

go 1.26.0

require github.com/external-secrets/external-secrets v1.3.2 // indirect
