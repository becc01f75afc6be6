#!/bin/bash
# BFS on four nodes of a Slurm cluster, one rank on each: sbatch slurm.sh graph.h5 cvc
#SBATCH --job-name=cusp
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=0
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.log
# For one rank per GPU: --ntasks-per-node=4 and --gpus-per-node=4, and the environment with CuPy below.
set -euo pipefail

graph=${1:?usage: sbatch slurm.sh graph.h5 [policy]}
policy=${2:-oec}
parts=${SLURM_SUBMIT_DIR:?not in a job: start this with sbatch}/parts-$SLURM_JOB_ID

# The site's MPI, and an environment in which "pip install ." installed this project without the extra mpich.
set +u # modules and environments look at variables that need not be set
module load "${CUSP_MPI_MODULE:-openmpi}"
source "${CUSP_ENVIRONMENT:-$HOME/cusp-env}/bin/activate"
set -u

# pmix is for Open MPI; MPICH and its relatives take pmi2. srun does not inherit --cpus-per-task by itself.
on_all_ranks=(srun "--mpi=${CUSP_PMI:-pmix}" --cpus-per-task "$SLURM_CPUS_PER_TASK")
export CUSP_THREADS=$SLURM_CPUS_PER_TASK

# Compile all that this job needs, once for all nodes, by two ranks of one: the same steps for a small graph of the same
# kind (without --weights if yours has none). The home folder must be the same on all nodes.
on_one_node=(srun "--mpi=${CUSP_PMI:-pmix}" --nodes=1 --ntasks-per-node=2 --cpus-per-task 2)
"${on_one_node[@]}" --ntasks=1 cusp generate rmat --scale 12 --weights 1:255 --output "$parts-small.h5"
"${on_one_node[@]}" --ntasks=2 cusp partition "$parts-small.h5" --policy "$policy" --save "$parts-small"
"${on_one_node[@]}" --ntasks=2 cusp bfs "$parts-small" --verify
rm -rf "$parts-small" "$parts-small.h5"

# Partition once, then search often. --log writes progress; if a rank makes no progress for ten minutes, the job ends.
"${on_all_ranks[@]}" cusp partition "$graph" --policy "$policy" --save "$parts" --log --timeout 600
"${on_all_ranks[@]}" cusp bfs "$parts" --sources 16 --verify --rows "bfs-$SLURM_JOB_ID.jsonl" --log --timeout 600
