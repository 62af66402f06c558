# SPDX-License-Identifier: Apache-2.0
# On node1.example: the variables by which a training, and leat, find the service.
export LEAT_COORDINATOR=coordinator.example:7411 LEAT_ACCESS_TOKEN_FILE=trainer-token
export LEAT_TLS_CA=ca.pem LEAT_TLS_CERT=node1.example.pem LEAT_TLS_KEY=node1.example.key
leat wait worker/node1 --for=ready
leat doctor
leat status
