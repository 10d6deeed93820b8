//! `ergodic slurm`: a job script for a cluster.

use std::path::Path;

/// A script for SLURM that runs a grid, or a single run, as a job array; `arguments` are those of `ergodic run`.
pub fn script(
    name: &str,
    arguments: &[String],
    shards: usize,
    cores: usize,
    time: &str,
    out: &Path,
) -> String {
    let quoted = |a: &String| match a
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._/=,:+-".contains(c))
    {
        true => a.clone(),
        false => format!("'{}'", a.replace('\'', "'\\''")),
    };
    let command: Vec<_> = arguments.iter().map(quoted).collect();
    let command = format!(
        "ergodic run {} --out {}",
        command.join(" "),
        quoted(&out.display().to_string())
    );
    format!(
        "#!/bin/bash\n#SBATCH --job-name={name}\n#SBATCH --array=1-{shards}\n#SBATCH --cpus-per-task={cores}\n#SBATCH --time={time}\n#SBATCH --requeue\n\
         # Ten minutes before its end a job is told to save what it has; --resume goes on with it.\n#SBATCH --signal=B:INT@600\n\n\
         # sbatch this file; when all jobs have ended:\n#   {command} --merge {shards}\n\n\
         RESUME=\n[ \"$SLURM_RESTART_COUNT\" ] && RESUME=--resume\n\
         exec {command} --shard \"$SLURM_ARRAY_TASK_ID/{shards}\" --threads \"$SLURM_CPUS_PER_TASK\" --quiet $RESUME"
    )
}
