package supervise

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Phases of a cluster, as in its state file.
const (
	phaseStarting = "starting"
	phaseReady    = "ready"
	phaseStopped  = "stopped"
	phaseFailed   = "failed"
)

// state is the content of `state.json` in the cluster's directory.
type state struct {
	Name       string         `json:"name"`
	Dir        string         `json:"dir"`
	Phase      string         `json:"phase"`
	Reason     string         `json:"reason,omitempty"`
	Attached   bool           `json:"attached"`
	Port       int            `json:"port,omitempty"`
	Kubeconfig string         `json:"kubeconfig"`
	AuditLog   string         `json:"auditLog"`
	Supervisor int            `json:"supervisor"`
	Children   []childProcess `json:"children"`
}

type childProcess struct {
	Name string `json:"name"`
	Pid  int    `json:"pid"`
}

func newState(o options) state {
	return state{
		Name:       o.name,
		Dir:        o.dir,
		Phase:      phaseStarting,
		Attached:   o.attached,
		Kubeconfig: filepath.Join(o.dir, "admin.kubeconfig"),
		AuditLog:   filepath.Join(o.dir, "logs", "audit.log"),
		Supervisor: os.Getpid(),
		Children:   []childProcess{},
	}
}

// write replaces the state file atomically, so that a reader never sees half of it.
func (s state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "state.json"), append(content, '\n'))
}

func writeFile(path string, content []byte) error {
	unfinished := path + ".tmp"
	if err := os.WriteFile(unfinished, content, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
