#!/bin/bash
#SBATCH --job-name=gtx
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120

set -eu
trap 'scontrol requeue "$SLURM_JOB_ID"' USR1

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1

srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 4 --max-restarts 3 \
    --rdzv-backend c10d --rdzv-endpoint "$first:29500" --rdzv-id "$SLURM_JOB_ID" \
    -m gtx train /shared/data.csv --target-columns y --devices 4 --out /shared/run &
wait $!
