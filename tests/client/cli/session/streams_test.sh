#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program $1 with standard streams that are full, closed, or without a reader.
set -u
fail() { echo "$*" >&2; exit 1; }

said=$("$1" completion bash 2>&1 >/dev/full) && fail "a full disk: exit code 0"
case $said in *"standard output takes no more"*) ;; *) fail "a full disk: $said" ;; esac
"$1" completion bash >&- 2>/dev/null && fail "a closed standard output: exit code 0"
# A file that it opens must not become its output.
folder=$(mktemp -d) && cd "$folder" || exit 1
"$1" man . >&- 2>&- || fail "closed standard streams: exit code $?"
case $(head -1 leat.1) in '.\"'*) ;; *) fail "printed into a file: $(head -1 leat.1)" ;; esac
rm -r "$folder"
said=$({ "$1" completion bash | true; } 2>&1)
test -z "$said" || fail "nobody reads: $said"
# A file at its size limit.
folder=$(mktemp -d) || exit 1
said=$(ulimit -f 0 && "$1" man "$folder" 2>&1) && fail "ulimit -f 0: exit code 0"
case $said in *": cannot be written: File too large"*) ;; *) fail "ulimit -f 0: $said" ;; esac
rm -r "$folder"
