// Command template-oracle renders Go templates with the original libraries, for the tests of plumb's own engine.
//
// It reads lines from standard input, each one JSON value:
//
//	{"template": "...", "params": {...}, "options": ["missingkey=error"]}
//
// A line without a template sets the parameters for all lines after it that have none. For each other line it writes
// the line again with one more field: "result", or "error" (a panic is an error). "params" are
// plain JSON, so that every number is a float64. Templates have the name "base", as in Argo CD.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/gosimple/slug"
	"sigs.k8s.io/yaml"
)

type question struct {
	Template string         `json:"template,omitempty"`
	Params   map[string]any `json:"params,omitempty"`
	Options  []string       `json:"options,omitempty"`
	Result   *string        `json:"result,omitempty"`
	Error    *string        `json:"error,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "template-oracle:", err)
		os.Exit(1)
	}
}

func run() error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 64<<20)
	var usual map[string]any
	for scanner.Scan() {
		line := scanner.Bytes()
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if asked.Template == "" {
			usual = asked.Params
			if err := encoder.Encode(asked); err != nil {
				return err
			}
			continue
		}
		given := asked
		if given.Params == nil {
			given.Params = usual
		}
		result, err := answer(given)
		if err != nil {
			text := err.Error()
			asked.Error, asked.Result = &text, nil
		} else {
			asked.Error, asked.Result = nil, &result
		}
		if err := encoder.Encode(asked); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// answer gives up after two seconds: a template may loop forever, and Go has no way to stop it.
func answer(asked question) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := render(asked)
		done <- outcome{text, err}
	}()
	select {
	case found := <-done:
		return found.text, found.err
	case <-time.After(2 * time.Second):
		return "", errors.New("the template takes too long")
	}
}

func render(asked question) (text string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v", problem)
		}
	}()
	// Values of a template may be changed by it.
	copied, err := json.Marshal(asked.Params)
	if err != nil {
		return "", err
	}
	params := map[string]any{}
	if err := json.Unmarshal(copied, &params); err != nil {
		return "", err
	}
	parsed, err := template.New("base").Funcs(functions()).Parse(asked.Template)
	if err != nil {
		return "", err
	}
	for _, option := range asked.Options {
		parsed = parsed.Option(option)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, params); err != nil {
		return "", err
	}
	return out.String(), nil
}

func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(all, name)
	}
	all["normalize"] = normalize
	all["slugify"] = slugify
	all["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	all["fromYaml"] = func(text string) (map[string]any, error) {
		read := map[string]any{}
		err := yaml.Unmarshal([]byte(text), &read)
		return read, err
	}
	all["fromYamlArray"] = func(text string) ([]any, error) {
		read := []any{}
		err := yaml.Unmarshal([]byte(text), &read)
		return read, err
	}
	return all
}

var outsideNames = regexp.MustCompile("[^-a-z0-9.]")

func normalize(name string) string {
	name = outsideNames.ReplaceAllString(strings.ToLower(name), "-")
	if len(name) > 253 {
		name = name[:253]
	}
	return strings.Trim(name, "-.")
}

// slugify takes a text, before it the maximal length, before that whether words stay whole.
func slugify(given ...any) string {
	length, whole := 50, true
	text := given[len(given)-1].(string)
	if len(given) > 1 {
		length = given[0].(int)
	}
	if len(given) > 2 {
		whole = given[1].(bool)
	}
	slug.EnableSmartTruncate = whole
	slug.MaxLength = length
	return slug.Make(normalize(text))
}
