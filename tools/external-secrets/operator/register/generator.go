// Package register links no generators.
package register
