//! The length extension of SHA-256: the hash of a longer text, from the hash of its beginning.

/// The padding that comes between, and the hash of `hashed`, padding and `suffix`.
pub(crate) fn of(hashed: [u8; 32], len: usize, suffix: &[u8]) -> (Vec<u8>, [u8; 32]) {
    let padding = padding(len);
    let total = len + padding.len() + suffix.len();
    let mut state = [0_u32; 8];
    for (word, bytes) in state.iter_mut().zip(hashed.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().unwrap());
    }
    let rest = [suffix, &self::padding(total)].concat();
    for block in rest.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    (padding, hash)
}

fn padding(len: usize) -> Vec<u8> {
    let zeros = (119 - len % 64) % 64;
    let bits = (len as u64 * 8).to_be_bytes();
    [&[0x80][..], &vec![0; zeros], &bits].concat()
}

/// The first 32 bits of the fractions of the cube roots of the first 64 primes.
fn constants() -> [u32; 64] {
    let mut constants = [0; 64];
    let is_prime = |n: &u64| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    for (constant, prime) in constants.iter_mut().zip((2..).filter(is_prime)) {
        // The largest x with x³ ≤ prime · 2⁹⁶ is the cube root in units of 2⁻³².
        let wanted = u128::from(prime) << 96;
        let (mut low, mut high) = (0_u128, 1_u128 << 36);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle * middle * middle <= wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        *constant = u32::try_from(low & 0xffff_ffff).unwrap();
    }
    constants
}

fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut w = [0_u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().unwrap());
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (constant, word) in constants().into_iter().zip(w) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(constant);
        let first = first.wrapping_add(word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}
