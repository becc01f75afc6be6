#!/bin/bash
# BFS on four nodes of a Slurm cluster, one rank on each: sbatch slurm.sh graph.h5 cvc
#SBATCH --job-name=cusp
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=0
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.log
# On GPUs, a rank for each: --ntasks-per-node=4 and --gpus-per-node=4, and the environment with CuPy below.
set -euo pipefail

graph=${1:?usage: sbatch slurm.sh graph.h5 [policy]}
policy=${2:-oec}
parts=${SLURM_SUBMIT_DIR:?not in a job: start this with sbatch}/parts-$SLURM_JOB_ID

# The site's MPI, and an environment into which "pip install ." put this project without the extra mpich.
module load "${CUSP_MPI_MODULE:-openmpi}"
source "${CUSP_ENVIRONMENT:-$HOME/cusp-env}/bin/activate"

# pmix is for Open MPI; MPICH and its relatives take pmi2. srun does not inherit --cpus-per-task by itself.
on_all_ranks=(srun "--mpi=${CUSP_PMI:-pmix}" --cpus-per-task "$SLURM_CPUS_PER_TASK")
export CUSP_THREADS=$SLURM_CPUS_PER_TASK

# Compile once for all nodes, on one rank; the home folder must be the same on all of them.
srun --ntasks=1 --nodes=1 cusp bfs --source 0

# Partition once, then search often. --log shows what it is at; a rank that gets no further for ten minutes ends it.
"${on_all_ranks[@]}" cusp partition "$graph" --policy "$policy" --save "$parts" --log --timeout 600
"${on_all_ranks[@]}" cusp bfs "$parts" --sources 16 --verify --rows "bfs-$SLURM_JOB_ID.jsonl" --log --timeout 600
