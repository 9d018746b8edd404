/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  20: 'a booking said that it was not sent while its last attempt was on its way',
  34: 'a wait said at its end that Redis did not answer in time, where it was down',
  61: 'a block that was over came back where time stands still',
  108: 'a law took a reservation for lost whose state a failover had brought back',
  700201:
    'a law expected no timeout of a call that was written late, to a server that still read its snapshot',
  198: 'a key of another type was kept where permits should be while memory was full',
  700090: 'a law took a block that another process had just ended for none, where it beats an exemption',
  50020: 'a call on several keys said that Redis did not answer in time, where it was down',
}
