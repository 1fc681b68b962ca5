alias Elem = u32;
