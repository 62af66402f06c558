# SPDX-License-Identifier: Apache-2.0
mkdir -m 700 ~/leat-cpu
leat slurm up cpu --dir ~/leat-cpu --min 1 --max 16 --cpus 4 --tls ~/tls \
    --sbatch=--partition=cpu --sbatch=--time=24:00:00 --worker=--allow=/data
