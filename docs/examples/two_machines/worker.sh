# SPDX-License-Identifier: Apache-2.0
# On node1.example: a worker, whose jobs read below /data.
leat-worker --listen 0.0.0.0:7412 --advertise node1.example:7412 --name node1 \
    --coordinator coordinator.example:7411 --access-token-file worker-token --allow /data \
    --tls-ca ca.pem --tls-cert node1.example.pem --tls-key node1.example.key &
