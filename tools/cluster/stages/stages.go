// Package stages holds what kwok plays on the objects of a cluster.
package stages

import "embed"

// Files are the stage files, one per kind of event in an object's life.
//
//go:embed *.yaml
var Files embed.FS
