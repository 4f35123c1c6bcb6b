// An OpenID provider on 127.0.0.1 for the story in which users log in: a certified library with its example's users and
// login page. Arguments: the port, and the address to which browsers return.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// withGroups gives every user groups: one in ID tokens, and another one in the user info, so that it can be seen
// which of them counts.
type withGroups struct{ *storage.Storage }

func (s withGroups) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	info.AppendClaims("groups", []string{"team"})
	return s.Storage.SetUserinfoFromRequest(ctx, info, request, scopes)
}

func (s withGroups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	info.AppendClaims("groups", []string{"crew"})
	return s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin)
}

func main() {
	if len(os.Args) != 3 {
		slog.Error("usage: oidc-provider PORT REDIRECT")
		os.Exit(2)
	}
	address := "127.0.0.1:" + os.Args[1]
	issuer := "http://" + address + "/"
	storage.RegisterClients(
		storage.WebClient("web", "secret", os.Args[2]),
		storage.NativeClient("cli", "http://localhost:8085/auth/callback"),
	)
	store := withGroups{storage.NewStorage(storage.NewUserStore(issuer))}
	router := exampleop.SetupServer(issuer, store, slog.Default(), false)
	if err := http.ListenAndServe(address, router); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}
