const TILE: u32 = 32u;
