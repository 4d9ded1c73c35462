#!/bin/bash
# Runs the tasks of a plan as a Slurm array. FOLDER is the --output that was planned, on storage that all nodes share:
#   tasks=$(sbatch --parsable --array=0-199%50 slurm.sh FOLDER)
#   sbatch --dependency=afterany:$tasks --cpus-per-task=8 --mem=4G --wrap 'pack-run FOLDER'
# afterany: the last job packs what lost tasks left, and says so where something is wrong. Run the command directly, as
# here, not by srun: then a preempted task is requeued and goes on behind its last finished part.
#SBATCH --job-name=pack
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
#SBATCH --time=2:00:00
#SBATCH --open-mode=append
#SBATCH --requeue

pack-run "$@" --task "$SLURM_ARRAY_TASK_ID" --memory-bytes 3G
code=$?
# 75: this node cannot read the inputs now. Another try, perhaps on another node; scontrol ends this job meanwhile.
if [ "$code" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit "$code"
