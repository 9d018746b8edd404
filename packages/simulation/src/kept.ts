/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  20: 'a booking said that it was not sent while its last attempt was on its way',
  34: 'a wait said at its end that Redis did not answer in time, where it was down',
  61: 'a block that was over came back where time stands still',
  700315:
    'an unblock went on without end for a record that the store had dropped, as its end lay ahead again',
  700384:
    'a law took a charge that was denied, as its key was blocked meanwhile, for one that was not given back',
  700432: 'a law compared instants that the server named before and after its clock was moved',
  700201:
    'a law expected no timeout of a call that was written late, to a server that still read its snapshot',
  67467078:
    'an override that was removed stayed in a process, as the store had dropped it before its clock was set back',
  67467072:
    'a law expected no more than twice the permits after two losses, by which the server had granted three times',
  233943847:
    'a twin did not know that a part that was tried and refused counts for the penalty, and so writes',
  233943897: 'a law expected a process not to pause where the server was too busy to take its hold',
  117231886: 'a law took a pause for that of another refusal, which was heard at the same instant',
  198: 'a key of another type was kept where permits should be while memory was full',
  700090: 'a law took a block that another process had just ended for none, where it beats an exemption',
  50020: 'a call on several keys said that Redis did not answer in time, where it was down',
  700454:
    'a twin took a state for gone that peeks leave, and that counts again once a clock that was set back has come near',
  900012: 'a law took a part of a whole for counted that another node, which was down, had not decided',
  900124: 'permits failed with an error of the script where another program had written and memory was full',
  910029:
    'a turn came before another of the same instant that was booked first, as a call between them had hung up',
  930002:
    'a law expected a block that a process had forgotten, as the server had decided a call of the key as not blocked',
  930010: 'a cost was told a shorter wait from memory than a smaller one that had been told later',
  930067: 'a law counted a call among those that ask though denied, which began before the denial was known',
  930131:
    'a law expected no timeout of a permit over a network as slow as the deadline of semaphores, which is the default',
  930110:
    'a law expected a free permit within a time of grace, which the first call after the clock was set back again cuts short',
  169894960:
    'a law took charges of two months for those of one, where a turn in the next was given back and the clock set back',
  169894990: 'a law took a block for one that denies, which a reset that had failed ended later',
}
