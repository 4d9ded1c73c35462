#!/bin/bash
# Runs the tasks of a plan as a Slurm array. FOLDER is the --output that was planned, on storage that all nodes share:
#   tasks=$(sbatch --parsable --array=0-199%50 slurm.sh FOLDER)
#   sbatch --dependency=afterany:$tasks --cpus-per-task=8 --mem=4G --wrap 'pack-run FOLDER'
# afterany: the last job packs what lost tasks left, and says so where something is wrong. Run the command directly, as
# here, not by srun: then a preempted task is requeued and goes on behind its last finished part.
# What a task takes. sbatch --cpus-per-task=16 --mem=8G changes it, too.
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
#SBATCH --job-name=pack
#SBATCH --time=2:00:00
#SBATCH --open-mode=append
#SBATCH --requeue
memory=${SLURM_MEM_PER_NODE:-0}  # MiB; 0 where --mem=0 gives a task all
[ "$memory" -gt 0 ] || memory=4096
memory=$((memory * 3 / 4))  # the rest is for the page cache

pack-run "$@" --task "$SLURM_ARRAY_TASK_ID" --memory-bytes "${memory}M"
code=$?
# 75: this node cannot read the inputs now. Another try, perhaps on another node; scontrol ends this job meanwhile.
if [ "$code" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit "$code"
