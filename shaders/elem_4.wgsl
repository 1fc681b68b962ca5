alias Elem = u32;
// Units of a sector of memory, 32 bytes.
const SECTOR: u32 = 8u;
