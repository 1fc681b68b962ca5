alias Elem = u32;
const TILE: u32 = 32u;
