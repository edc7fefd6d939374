//! Whether a crash writes the memory of the process to a file.
//!
//! The memory of a server has every secret of its sources in it, and a core file goes where no one
//! looks after it.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What was allowed before.
pub(crate) struct Before {
    soft: u64,
    #[cfg(target_os = "linux")]
    dumpable: bool,
}

/// Turns core dumps off. The limit alone does not: a handler of the system that takes them over a
/// pipe is not bound by it. A process that cannot be dumped cannot be attached to either, but by
/// root.
pub(crate) fn forbid() -> io::Result<Before> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, 0, hard)?;
    #[cfg(target_os = "linux")]
    let dumpable = nix::sys::prctl::get_dumpable()?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false)?;
    Ok(Before {
        soft,
        #[cfg(target_os = "linux")]
        dumpable,
    })
}

impl Before {
    /// Puts it back as it was.
    pub(crate) fn restore(self) -> io::Result<()> {
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
        setrlimit(Resource::RLIMIT_CORE, self.soft, hard)?;
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_dumpable(self.dumpable)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_off_until_they_are_put_back() {
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap();
        setrlimit(Resource::RLIMIT_CORE, hard, hard).unwrap();
        let before = forbid().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, hard));
        #[cfg(target_os = "linux")]
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
        before.restore().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (hard, hard));
        #[cfg(target_os = "linux")]
        assert!(nix::sys::prctl::get_dumpable().unwrap());
    }
}
