# SPDX-License-Identifier: Apache-2.0
# On coordinator.example: a token for workers and one for trainers, and what the other machine needs.
export LEAT_COORDINATOR=coordinator.example:7411 LEAT_TLS_CA=ca.pem LEAT_ACCESS_TOKEN_FILE=own-token
umask 077
leat access create --role worker --name nodes > worker-token
leat access create --role trainer --name vision --expires 90d > trainer-token
scp -p ca.pem node1.example.pem node1.example.key worker-token trainer-token node1.example:
