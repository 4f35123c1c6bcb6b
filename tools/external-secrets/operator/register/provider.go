// Package register links the one provider that the tests use.
package register

import _ "github.com/external-secrets/external-secrets/pkg/provider/fake"
