// An OpenID provider on 127.0.0.1 for the story in which users log in: a certified library with its example's users and
// login page. Arguments: the port, and the address to which browsers return.
package main

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if len(os.Args) != 3 {
		slog.Error("usage: oidc-provider PORT REDIRECT")
		os.Exit(2)
	}
	address := "127.0.0.1:" + os.Args[1]
	issuer := "http://" + address + "/"
	storage.RegisterClients(storage.WebClient("web", "secret", os.Args[2]))
	store := storage.NewStorage(storage.NewUserStore(issuer))
	router := exampleop.SetupServer(issuer, store, slog.Default(), false)
	if err := http.ListenAndServe(address, router); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}
