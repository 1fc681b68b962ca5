alias Elem = vec4<u32>;
// Units of a sector of memory, 32 bytes.
const SECTOR: u32 = 2u;
