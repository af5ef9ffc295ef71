// The clock of the machine, as this process sees it.

/** Sets the clock so many milliseconds forwards, or back; what is returned sets it right again. */
export function stepClock(ms) {
  const Real = globalThis.Date;
  globalThis.Date = class extends Real {
    constructor(...given) {
      if (given.length === 0) super(Real.now() + ms);
      else super(...given);
    }

    static now() {
      return Real.now() + ms;
    }
  };
  return () => {
    globalThis.Date = Real;
  };
}
