// Command yaml-oracle reads YAML as Kubernetes does, for the tests of plumb's own reader.
//
// It reads lines from standard input, each one JSON value: a string is a text, {"base64": "..."} is bytes.
// For each it writes one line:
//
//	{"documents": ["<JSON>", ...], "strict": true}   what apimachinery and sigs.k8s.io/yaml read
//	{"error": true}                                  they refuse it
//
// "strict" is true if the strict reader, which refuses duplicate keys, accepts it too.
//
// With -record DIR it reads DIR/scalars.jsonl and DIR/documents.jsonl instead, puts every scalar into every
// context that matters, and writes the inputs with the results.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Text      *string  `json:"text,omitempty"`
	Base64    *string  `json:"base64,omitempty"`
	Documents []string `json:"documents,omitempty"`
	Strict    bool     `json:"strict,omitempty"`
	Error     bool     `json:"error,omitempty"`
}

// The places of a scalar: alone, as a value, as a key, in flow collections, quoted, and under every tag that
// the resolver knows.
var contexts = []string{
	"%s", "a: %s", "%s: 1", "- %s", "[%s]", "{a: %s}", "'%s'", "\"%s\"",
	"!!str %s", "!!int %s", "!!float %s", "!!bool %s", "!!null %s", "!!timestamp %s", "!!binary %s", "! %s",
	"!!int '%s'", "!local %s", "k: &x %s\nl: *x",
}

func main() {
	record := flag.String("record", "", "directory with scalars.jsonl and documents.jsonl")
	flag.Parse()
	if err := run(*record); err != nil {
		fmt.Fprintln(os.Stderr, "yaml-oracle:", err)
		os.Exit(1)
	}
}

func run(record string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if record == "" {
		return eachLine(os.Stdin, func(text, encoded *string) error {
			given, err := input(text, encoded)
			if err != nil {
				return err
			}
			if err := encoder.Encode(ask(given)); err != nil {
				return err
			}
			return out.Flush()
		})
	}
	emit := func(text, encoded *string) error {
		given, err := input(text, encoded)
		if err != nil {
			return err
		}
		result := ask(given)
		result.Text, result.Base64 = text, encoded
		return encoder.Encode(result)
	}
	err := eachLineOf(filepath.Join(record, "scalars.jsonl"), func(text, _ *string) error {
		for _, context := range contexts {
			placed := strings.ReplaceAll(context, "%s", *text)
			if err := emit(&placed, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachLineOf(filepath.Join(record, "documents.jsonl"), emit)
}

func eachLineOf(path string, visit func(text, encoded *string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := eachLine(file, visit); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Blank lines and lines that start with # are comments.
func eachLine(in io.Reader, visit func(text, encoded *string) error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		line := scanner.Bytes()
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var text string
		if err := json.Unmarshal(line, &text); err == nil {
			if err := visit(&text, nil); err != nil {
				return err
			}
			continue
		}
		var encoded struct {
			Base64 string `json:"base64"`
		}
		if err := json.Unmarshal(line, &encoded); err != nil {
			return fmt.Errorf("neither a string nor bytes: %q", line)
		}
		if err := visit(nil, &encoded.Base64); err != nil {
			return err
		}
	}
	return scanner.Err()
}

func input(text, encoded *string) ([]byte, error) {
	if text != nil {
		return []byte(*text), nil
	}
	return base64.StdEncoding.DecodeString(*encoded)
}

// ask splits the stream as kubectl does and reads each document.
func ask(given []byte) (result answer) {
	// The reader panics on some inputs. Its callers turn that into an error, and so does this program.
	defer func() {
		if recover() != nil {
			result = answer{Error: true}
		}
	}()
	reader := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(given)))
	result.Strict = true
	result.Documents = []string{}
	for {
		document, err := reader.Read()
		if err == io.EOF {
			return result
		}
		if err != nil {
			return answer{Error: true}
		}
		read, err := yaml.YAMLToJSON(document)
		if err != nil {
			return answer{Error: true}
		}
		if _, err := yaml.YAMLToJSONStrict(document); err != nil {
			result.Strict = false
		}
		result.Documents = append(result.Documents, string(read))
	}
}
