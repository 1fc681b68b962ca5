alias Elem = vec2<u32>;
const TILE: u32 = 32u;
