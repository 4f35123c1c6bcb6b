// Program page bundles the page: TypeScript and CSS into files with immutable names.
//
//	page SOURCE VENDOR OUTPUT
//
// SOURCE has main.tsx and page.css. VENDOR has the packages by name. OUTPUT gets the bundle and `entries.txt`, which
// names the script and the style.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: page SOURCE VENDOR OUTPUT")
		os.Exit(2)
	}
	if err := bundle(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bundle(source, vendor, output string) error {
	absolute := func(path ...string) string {
		whole, err := filepath.Abs(filepath.Join(path...))
		if err != nil {
			return filepath.Join(path...)
		}
		return whole
	}
	result := api.Build(api.BuildOptions{
		EntryPoints:       []string{absolute(source, "main.tsx"), absolute(source, "page.css")},
		AbsWorkingDir:     absolute(source),
		Outdir:            absolute(output),
		Bundle:            true,
		Format:            api.FormatESModule,
		Target:            api.ES2022,
		Charset:           api.CharsetUTF8,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsNone,
		EntryNames:        "[name]-[hash]",
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		// The vendored packages are named here: there is no node_modules to search.
		Alias: map[string]string{
			"preact":               absolute(vendor, "preact/dist/preact.mjs"),
			"preact/hooks":         absolute(vendor, "preact/hooks/dist/hooks.mjs"),
			"preact/jsx-runtime":   absolute(vendor, "preact/jsx-runtime/dist/jsxRuntime.mjs"),
			"@preact/signals":      absolute(vendor, "@preact/signals/dist/signals.mjs"),
			"@preact/signals-core": absolute(vendor, "@preact/signals-core/dist/signals-core.mjs"),
		},
		Write:    true,
		LogLevel: api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return fmt.Errorf("cannot bundle the page: %d errors", len(result.Errors))
	}
	entries := ""
	for _, file := range result.OutputFiles {
		name := filepath.Base(file.Path)
		if strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".css") {
			entries += name + "\n"
		}
	}
	return os.WriteFile(filepath.Join(output, "entries.txt"), []byte(entries), 0o644)
}
