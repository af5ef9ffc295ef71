/** Waiting between attempts. */

/** Delays that grow from `firstMs` to `maxMs`, each of them shortened by chance by up to a half. */
export class Backoff {
  #tries = 0;

  constructor(
    private readonly firstMs: number,
    private readonly maxMs: number,
  ) {}

  /** Milliseconds to wait now; longer each time until {@link reset}. */
  next(): number {
    return jittered(this.firstMs, this.maxMs, this.#tries++);
  }

  /** After success. */
  reset(): void {
    this.#tries = 0;
  }
}

/** The delay before try number `tries` (from 0). */
export function jittered(firstMs: number, maxMs: number, tries: number): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(tries, 20));
  return full * (0.5 + Math.random() / 2);
}

/** Waits; rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
