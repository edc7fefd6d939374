//! What processes cost: CPU time, memory and bytes on disk, as Linux tells them.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// CPU time a process and the children it has waited for have used.
pub(crate) fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = fields(&stat);
    // utime, stime, cutime, cstime in ticks of a hundredth of a second.
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// CPU time of a process and of everything it started.
pub(crate) fn cpu_of_family(pid: u32) -> Option<Duration> {
    let mut sum = cpu_of(pid)?;
    for child in children(pid) {
        sum += cpu_of(child).unwrap_or_default();
    }
    Some(sum)
}

/// The most memory a process has held.
pub(crate) fn memory_peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The process that started `pid`.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    fields(&stat).get(1)?.parse().ok()
}

/// Bytes of all files in a folder.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

fn children(of: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(of))
        .collect()
}

/// The fields after the name, which may itself hold spaces and brackets.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect()
}
