# SPDX-License-Identifier: Apache-2.0
leat slurm status cpu --dir ~/leat-cpu
export LEAT_COORDINATOR=$(cat ~/leat-cpu/address) LEAT_ACCESS_TOKEN_FILE=~/leat-cpu/token
export LEAT_TLS_CA=~/tls/ca.pem LEAT_TLS_CERT=~/tls/node.pem LEAT_TLS_KEY=~/tls/node.key
leat get pools
leat pool set cpu --min 2 --max 32
