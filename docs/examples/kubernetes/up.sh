# SPDX-License-Identifier: Apache-2.0
# In the folder of your overlay, with a checkout of Leat beside it.
kubectl create namespace leat
kubectl -n leat create secret generic leat-coordinator-token --from-literal=token="$(openssl rand -hex 32)"
kubectl apply -k ../leat/deploy/kubernetes/certificates
kubectl apply -k .
kubectl -n leat rollout status statefulset/leat-coordinator deployment/leat-worker
kubectl -n leat exec leat-coordinator-0 -- leat pool set cpu --min 1 --max 16
