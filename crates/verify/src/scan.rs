//! The grammar of JSON, one token at a time, over text that is known to be UTF-8.
//!
//! Most of a body is only skipped, so this finds where a token ends and that it is
//! well-formed, and not what it means. What it accepts is what `serde_json` does; a test
//! in `look` compares the two. The small steps are always inlined: then the place stays
//! in a register from token to token, and most of the time went into fetching it.

/// Why a text cannot be read on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// It is not JSON after so many bytes.
    NotJson(usize),
    /// It nests too deep.
    TooDeep,
}

/// A place in a JSON text. Every method moves it behind what it read.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What was read since `start`, a place where a token began.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    pub(crate) fn wrong(&self) -> Stop {
        Stop::NotJson(self.at)
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves behind white space and tells what comes then.
    #[inline(always)]
    pub(crate) fn space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    #[inline(always)]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            return false;
        }
        self.at += 1;
        true
    }

    /// White space, then `byte`.
    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.space() != Some(byte) {
            return Err(self.wrong());
        }
        self.at += 1;
        Ok(())
    }

    /// White space, then a comma, or `close` at the end of a list.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, close: u8) -> Result<bool, Stop> {
        match self.space() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.wrong()),
        }
    }

    /// Moves behind a value, whatever it is. It may nest `room` levels deep, at most 128.
    pub(crate) fn skip(&mut self, room: usize) -> Result<(), Stop> {
        self.skip_inside(0, room)
    }

    /// Moves behind the rest of an array, the next element and its closing bracket included. The
    /// array itself is one of the levels.
    pub(crate) fn skip_elements(&mut self, room: usize) -> Result<(), Stop> {
        self.skip_inside(1, room)
    }

    fn skip_inside(&mut self, arrays: usize, room: usize) -> Result<(), Stop> {
        debug_assert!(room <= 128, "there is one bit for each level");
        // A scanner that nobody else sees need not be kept in memory.
        let mut own = Scanner { text: self.text, at: self.at };
        let outcome = own.skip_here(arrays, room);
        self.at = own.at;
        outcome
    }

    /// Moves behind a value, or, inside so many open arrays, behind these.
    #[inline(always)]
    fn skip_here(&mut self, arrays: usize, room: usize) -> Result<(), Stop> {
        let mut depth = arrays;
        // A bit for each bracket that is open, the innermost last; set for an object.
        let mut objects = 0_u128;
        loop {
            let mut ended = true;
            match self.space() {
                Some(b'"') => drop(self.string()?),
                Some(b'{' | b'[') if depth == room => return Err(Stop::TooDeep),
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    depth += 1;
                    objects = (objects << 1) | u128::from(bracket == b'{');
                    // The closing brackets come two after the opening ones.
                    ended = self.space() == Some(bracket + 2);
                    if !ended && bracket == b'{' {
                        self.key()?;
                    }
                }
                _ => self.scalar()?,
            }
            while ended {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = objects & 1 == 1;
                ended = !self.goes_on(if is_object { b'}' } else { b']' })?;
                if ended {
                    depth -= 1;
                    objects >>= 1;
                } else if is_object {
                    self.key()?;
                }
            }
        }
    }

    /// A key and its colon.
    #[inline(always)]
    fn key(&mut self) -> Result<(), Stop> {
        self.space();
        self.string()?;
        self.expect(b':')
    }

    /// A string with its quotes. Returns whether it holds escapes.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<bool, Stop> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong());
        }
        self.at += 1;
        let mut escapes = false;
        loop {
            self.plain_text();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escapes);
                }
                Some(b'\\') => {
                    self.escape()?;
                    escapes = true;
                }
                // A control character, or the end.
                _ => return Err(self.wrong()),
            }
        }
    }

    /// Moves to the next quote, backslash or control character, eight bytes at a time.
    #[inline(always)]
    fn plain_text(&mut self) {
        const ONES: u64 = u64::MAX / 255;
        const HIGHS: u64 = ONES << 7;
        let mut rest = &self.text.as_bytes()[self.at..];
        while let Some((chunk, after)) = rest.split_first_chunk() {
            let chunk = u64::from_le_bytes(*chunk);
            // Where a byte is less than `n`, subtracting `n` borrows into its highest bit.
            // That may also touch later bytes, but only the first one counts.
            let less = |chunk: u64, n: u64| chunk.wrapping_sub(ONES * n) & !chunk;
            let quote = less(chunk ^ (ONES * u64::from(b'"')), 1);
            let backslash = less(chunk ^ (ONES * u64::from(b'\\')), 1);
            let special = (quote | backslash | less(chunk, 0x20)) & HIGHS;
            if special != 0 {
                self.at = self.text.len() - rest.len() + special.trailing_zeros() as usize / 8;
                return;
            }
            rest = after;
        }
        let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
        self.at = self.text.len() - rest.len() + rest.iter().take_while(plain).count();
    }

    #[inline(always)]
    fn escape(&mut self) -> Result<(), Stop> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.wrong());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    /// A number, or `true`, `false` or `null`.
    #[inline(always)]
    pub(crate) fn scalar(&mut self) -> Result<(), Stop> {
        let word = match self.peek() {
            Some(b't') => "true",
            Some(b'f') => "false",
            Some(b'n') => "null",
            _ => return self.number(),
        };
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong());
        }
        self.at += word.len();
        Ok(())
    }

    #[inline(always)]
    fn number(&mut self) -> Result<(), Stop> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            // No digit follows a leading zero.
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        // Most numbers end here.
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Ok(());
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'-') {
                self.eat(b'+');
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.wrong()) }
    }
}
