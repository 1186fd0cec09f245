// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package file

import (
	"errors"
	"os"
)

func lockFolder(dir string, write bool) (*os.File, error) {
	return nil, errors.New("folders cannot be locked on this platform: use redis or s3")
}
