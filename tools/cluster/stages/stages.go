// Package stages has the kwok stages of the objects of a cluster.
package stages

import "embed"

// Files are the stage files.
//
//go:embed *.yaml
var Files embed.FS
