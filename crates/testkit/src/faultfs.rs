//! Disks that fail: full, stalled, lying, erring, and without power. Linux only.
//!
//! A kill cannot show a missing sync, since the page cache survives it. A process started with
//! [`FaultFs::envs`] runs under a preloaded layer (`shim/faultfs.c`) that keeps, beside the
//! directory, a shadow of what was really synced; [`FaultFs::cut_power`] puts the shadow in the
//! directory's place.
//!
//! ```
//! use std::process::Command;
//! use oncebox_testkit::faultfs::FaultFs;
//!
//! let disk = tempfile::tempdir()?;
//! let faults = FaultFs::new(disk.path());
//! let write = "dd if=/dev/zero of=$DISK/synced bs=1 count=3 conv=fsync
//!              dd if=/dev/zero of=$DISK/unsynced bs=1 count=3";
//! let mut shell = Command::new("sh");
//! shell.args(["-c", write]).env("DISK", disk.path()).envs(faults.envs());
//! assert!(shell.output()?.status.success());
//!
//! faults.cut_power();
//! assert_eq!(std::fs::read(disk.path().join("synced"))?, [0, 0, 0]);
//! assert!(std::fs::read(disk.path().join("unsynced"))?.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::wait;

/// Places in the control file; `shim/control.h` has the same.
mod at {
    pub(super) const DROP_SYNCS: u64 = 0;
    pub(super) const STALL_SYNCS: u64 = 4;
    pub(super) const FAIL_SYNCS: u64 = 8;
    pub(super) const DISK_FULL: u64 = 12;
    pub(super) const BUDGET: u64 = 16;
    pub(super) const ONLY: u64 = 24;
    pub(super) const SYNCS: u64 = 88;
    pub(super) const FAILED_SYNCS: u64 = 96;
    pub(super) const SYNCS_AFTER_FAILURE: u64 = 104;
    pub(super) const STALLS: u64 = 112;
    pub(super) const REFUSED_WRITES: u64 = 120;
    /// From here on the layer's own: what it remembers of files.
    pub(super) const MEMORY: usize = 128;
}

/// As long as the layer's `struct control` can get; sparse.
const CONTROL_LENGTH: u64 = 8 << 20;

/// What the layer counts in, and what a disk may tear a write into.
const BLOCK: usize = 4096;

/// The faults of one directory, switched while processes run in it.
#[derive(Debug)]
pub struct FaultFs {
    dir: PathBuf,
    home: TempDir,
    control: File,
}

impl FaultFs {
    /// Prepares faults for `dir`. What is in it now counts as synced.
    ///
    /// # Panics
    ///
    /// When there is no such directory, or no C compiler for the layer.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        let dir = dir.as_ref().canonicalize().expect("find the directory to have faults");
        let home = tempfile::Builder::new().prefix("oncebox-faultfs-").tempdir().expect("a folder");
        fs::write(home.path().join("faultfs.so"), layer()).expect("place the layer");
        let control = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(home.path().join("control"))
            .expect("make the control file");
        control.set_len(CONTROL_LENGTH).expect("size the control file");
        copy_tree(&dir, &home.path().join("shadow"));
        Self { dir, home, control }
    }

    /// The environment that puts a process under the layer.
    pub fn envs(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().expect("temporary paths are UTF-8").to_owned();
        vec![
            ("LD_PRELOAD".into(), text(&self.home.path().join("faultfs.so"))),
            ("FAULTFS_DIR".into(), text(&self.dir)),
            ("FAULTFS_SHADOW".into(), text(&self.shadow())),
            ("FAULTFS_CONTROL".into(), text(&self.home.path().join("control"))),
        ]
    }

    /// Restricts sync faults to files whose names end in `suffix`; an empty one lifts that.
    pub fn only(&self, suffix: &str) {
        assert!(suffix.len() < 64, "{suffix} is too long");
        let mut bytes = [0; 64];
        bytes[..suffix.len()].copy_from_slice(suffix.as_bytes());
        self.control.write_all_at(&bytes, at::ONLY).expect("write the control file");
    }

    /// Syncs report success and do nothing: the disk, or the program's setting, that lies.
    pub fn drop_syncs(&self, on: bool) {
        self.switch(at::DROP_SYNCS, u32::from(on));
    }

    /// Syncs do not return while this is on.
    pub fn stall_syncs(&self, on: bool) {
        self.switch(at::STALL_SYNCS, u32::from(on));
    }

    /// Every sync fails with EIO. As on Linux, what it should have written is not written by a
    /// later sync either, although programs go on reading it from the page cache.
    pub fn fail_syncs(&self, on: bool) {
        self.switch(at::FAIL_SYNCS, if on { 2 } else { 0 });
    }

    /// The next sync fails as under [`Self::fail_syncs`], those after it do not.
    pub fn fail_next_sync(&self) {
        self.switch(at::FAIL_SYNCS, 1);
    }

    /// Every write fails with ENOSPC, also one into the middle of a file.
    pub fn disk_full(&self, on: bool) {
        self.write_budget(0);
        self.switch(at::DISK_FULL, u32::from(on));
    }

    /// The disk has room for `bytes` more. The write that hits the limit is a short one, as the
    /// kernel does it; the next fails.
    pub fn disk_full_after(&self, bytes: u32) {
        self.write_budget(bytes.into());
        self.switch(at::DISK_FULL, 1);
    }

    /// How many syncs of files were asked for, whatever became of them.
    pub fn syncs(&self) -> u64 {
        self.counter(at::SYNCS)
    }

    /// How many syncs failed with EIO by our doing.
    pub fn failed_syncs(&self) -> u64 {
        self.counter(at::FAILED_SYNCS)
    }

    /// How many syncs were asked for on the file whose sync failed last. Anything but 0 is a
    /// retry, and a retry succeeds without having written.
    pub fn syncs_after_failure(&self) -> u64 {
        self.counter(at::SYNCS_AFTER_FAILURE)
    }

    /// How many syncs ran into a stall so far.
    pub fn stalls(&self) -> u64 {
        self.counter(at::STALLS)
    }

    /// How many writes found the disk full so far.
    pub fn refused_writes(&self) -> u64 {
        self.counter(at::REFUSED_WRITES)
    }

    /// Waits until `counter` shows at least `least`.
    ///
    /// # Panics
    ///
    /// After [`wait::DEADLINE`].
    #[track_caller]
    pub fn wait_for(&self, counter: fn(&Self) -> u64, least: u64) {
        wait::until(&format!("{least} of {self:?}"), || counter(self) >= least);
    }

    /// Leaves in the directory what a power cut would if nothing unsynced had reached the disk.
    /// Every process that uses it must be dead. SQLite's `-shm` files are gone; creating,
    /// renaming and removing files counts as synced at once.
    pub fn cut_power(&self) {
        empty(&self.dir);
        copy_tree(&self.shadow(), &self.dir);
        self.forget_files();
    }

    /// As [`Self::cut_power`], but of the unsynced blocks some reached the disk, in no order.
    /// The same seed over the same files keeps the same ones.
    pub fn cut_power_torn(&self, seed: u64) {
        let mut chance = Chance(seed);
        for path in files(&self.shadow()) {
            let name = path.strip_prefix(self.shadow()).expect("listed below it");
            if let Ok(written) = fs::read(self.dir.join(name)) {
                let synced = fs::read(&path).expect("read a shadow file");
                fs::write(&path, torn(&synced, &written, &mut chance)).expect("tear a file");
            }
        }
        self.cut_power();
    }

    /// A copy of the directory, to look at. Whoever opens the original outside the layer and
    /// writes to it, as SQLite does for a mere look, makes the shadow stale.
    pub fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("make a temporary folder");
        copy_tree(&self.dir, copy.path());
        copy
    }

    fn shadow(&self) -> PathBuf {
        self.home.path().join("shadow")
    }

    fn switch(&self, place: u64, value: u32) {
        self.control.write_all_at(&value.to_ne_bytes(), place).expect("write the control file");
    }

    fn write_budget(&self, bytes: i64) {
        self.control
            .write_all_at(&bytes.to_ne_bytes(), at::BUDGET)
            .expect("write the control file");
    }

    fn counter(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, place).expect("read the control file");
        u64::from_ne_bytes(bytes)
    }

    /// Keeps switches and counters only: the files are new ones now.
    fn forget_files(&self) {
        let mut kept = [0; at::MEMORY];
        self.control.read_exact_at(&mut kept, 0).expect("read the control file");
        self.control.set_len(0).expect("empty the control file");
        self.control.set_len(CONTROL_LENGTH).expect("size the control file");
        self.control.write_all_at(&kept, 0).expect("write the control file");
    }
}

/// Changes one byte of a file, as failing media do.
///
/// # Panics
///
/// When the file has no such byte.
pub fn flip_byte(path: impl AsRef<Path>, offset: u64) {
    let file = File::options().read(true).write(true).open(path).expect("open the file to harm");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("read the byte to flip");
    file.write_all_at(&[!byte[0]], offset).expect("flip the byte");
}

/// The compiled layer. Kept in memory, since a static would leave its file behind.
fn layer() -> &'static [u8] {
    static LAYER: OnceLock<Vec<u8>> = OnceLock::new();
    LAYER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("make a temporary folder");
        let source = folder.path().join("faultfs.c");
        let library = folder.path().join("faultfs.so");
        fs::write(&source, include_str!("../shim/faultfs.c")).expect("write the source");
        fs::write(folder.path().join("control.h"), include_str!("../shim/control.h"))
            .expect("write the source");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(&compiler)
            .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap_or_else(|error| panic!("run the C compiler {}: {error}", compiler.display()));
        assert!(
            output.status.success(),
            "the file fault layer does not compile:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::read(library).expect("read the library")
    })
}

/// `synced` with some of the blocks in which `written` differs, and one of the two lengths.
fn torn(synced: &[u8], written: &[u8], chance: &mut Chance) -> Vec<u8> {
    let length = if chance.toss() { written.len() } else { synced.len() };
    let mut result = vec![0; length];
    for start in (0..length).step_by(BLOCK) {
        let range = start..length.min(start + BLOCK);
        let differs = synced.get(range.clone()) != written.get(range.clone());
        let from = if differs && chance.toss() { written } else { synced };
        let kept = &from[from.len().min(range.start)..from.len().min(range.end)];
        result[range.start..range.start + kept.len()].copy_from_slice(kept);
    }
    result
}

/// The splitmix64 generator: small, and good enough for tossing coins.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn toss(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}

fn empty(dir: &Path) {
    for entry in fs::read_dir(dir).expect("list the directory").map(|entry| entry.expect("list")) {
        let is_dir = entry.file_type().expect("look at an entry").is_dir();
        let remove = if is_dir { fs::remove_dir_all } else { fs::remove_file };
        remove(entry.path()).expect("empty the directory");
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make a directory");
    for path in files(from) {
        if path.to_str().is_some_and(|path| path.ends_with("-shm")) {
            continue;
        }
        let target = to.join(path.strip_prefix(from).expect("listed below it"));
        fs::create_dir_all(target.parent().expect("below a directory")).expect("make a directory");
        fs::copy(&path, &target).expect("copy a file");
    }
}

/// The regular files below `dir`, in the same order each time.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("list a directory").map(|entry| entry.expect("list")) {
        let kind = entry.file_type().expect("look at an entry");
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_file_has_whole_blocks_of_either() {
        let (synced, written) = (vec![b's'; 3 * BLOCK + 10], vec![b'w'; 4 * BLOCK]);
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..32 {
            let torn = torn(&synced, &written, &mut Chance(seed));
            lengths.insert(torn.len());
            for block in torn.chunks(BLOCK).take(3) {
                assert!(block.iter().all(|byte| *byte == block[0]), "{seed}");
            }
            assert!(torn[3 * BLOCK..].iter().all(|byte| b"sw\0".contains(byte)), "{seed}");
        }
        assert_eq!(lengths, [synced.len(), written.len()].into());
    }

    #[test]
    fn a_flipped_byte_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page");
        fs::write(&path, [1, 2, 3]).unwrap();
        flip_byte(&path, 1);
        assert_eq!(fs::read(&path).unwrap(), [1, 253, 3]);
    }
}
