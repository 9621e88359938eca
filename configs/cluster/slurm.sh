#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch slurm.sh: trains on the processors of four nodes, with two processes on each.
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
set -euo pipefail

# Each process uses the cores that mpirun binds it to. The folder of the checkpoints must be on a shared file system.
mpirun --map-by "ppr:2:node:pe=${SLURM_CPUS_PER_TASK:-16}" \
  mge train model.onnx --data train.npz --data-parallel --device cpu0 \
  --epochs 10 --batch 256 --checkpoint "$PWD/checkpoints" --resume -o trained.onnx

# On GPUs, srun is enough, with one process for each. The processes meet at the first node.
#   export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1) MASTER_PORT=29500
#   export MGE_COLLECTIVE_TOKEN=$(openssl rand -hex 16)
#   srun bash -c 'exec mge train model.onnx --data train.npz --data-parallel --device "gpu$SLURM_LOCALID" -o trained.onnx'
