#!/bin/sh
# Makes the files of the image besides plumb, helm and kustomize: sh tools/image/root.sh OUTPUT.tar
#
# Needs mmdebstrap, and root (or a user namespace). The same packages give the same bytes.
set -eu
output=$1
# Every time stamp becomes this one.
SOURCE_DATE_EPOCH=0
export SOURCE_DATE_EPOCH

# The user that the Deployment names. ssh refuses to run for a user without an entry.
user='plumb:x:65532:65532:plumb:/home/plumb:/usr/sbin/nologin'
# Git depends on all of Perl for commands that plumb does not call. perl-base stays, for Debian's own scripts.
exec mmdebstrap --quiet --variant=essential \
    --include=ca-certificates,git,gpg,openssh-client,tini \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/zoneinfo/*' \
    --dpkgopt='path-exclude=/usr/share/bash-completion/*' \
    --dpkgopt='path-exclude=/usr/share/i18n/*' \
    --dpkgopt='path-exclude=/usr/share/gitweb/*' \
    --dpkgopt='path-exclude=/usr/share/doc/git/contrib/*' \
    --customize-hook="echo '$user' >> \"\$1/etc/passwd\"" \
    --customize-hook='echo "plumb:x:65532:" >> "$1/etc/group"' \
    --customize-hook='install -d -o 65532 -g 65532 -m 0700 "$1/home/plumb"' \
    --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +' \
    --customize-hook='rm -rf "$1"/var/cache/ldconfig/aux-cache "$1"/var/log/* "$1"/etc/machine-id' \
    --customize-hook='rm -rf "$1"/usr/share/perl "$1"/usr/lib/*/perl/5.* "$1"/usr/lib/*/libperl.so*' \
    --customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname"' \
    bookworm "$output"
