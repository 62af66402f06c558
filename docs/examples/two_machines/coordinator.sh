# SPDX-License-Identifier: Apache-2.0
# On coordinator.example: a certificate for each machine, the coordinator's own token, the coordinator.
sh make-certificate coordinator.example DNS:coordinator.example,IP:10.0.0.5
sh make-certificate node1.example DNS:node1.example,IP:10.0.0.6
umask 077
openssl rand -hex 32 > own-token
leat-coordinator --listen 0.0.0.0:7411 --state leat-state --access-token-file own-token \
    --tls-cert coordinator.example.pem --tls-key coordinator.example.key &
