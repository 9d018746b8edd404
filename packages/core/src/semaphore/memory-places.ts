import type { Places, PlacesOptions } from './places.js'

/**
 * The places of semaphores in this process, by name and key. A holder cannot die alone here, so there are no leases
 * and no timers; a key with neither holders nor a line takes no memory.
 */
export class MemoryPlaces {
  readonly #rooms = new Map<string, Room>()

  /** What one semaphore sees. */
  of({ name, report }: PlacesOptions): Places {
    const guests = new Map<number, Guest>()
    const rooms = this.#rooms
    const idOf = (key: string): string => `${name}\n${key}` // names have no line breaks
    return {
      failure: undefined,
      take(key, ticket, limit, wait) {
        const id = idOf(key)
        const room: Room = rooms.get(id) ?? { held: 0, line: new Set() }
        const free = room.held < limit && room.line.size === 0
        if (!free && !wait) return false
        const guest: Guest = { room, limit, inside: free, enter: () => report(ticket, 'granted') }
        if (free) room.held++
        else room.line.add(guest)
        rooms.set(id, room)
        guests.set(ticket, guest)
        return free
      },
      leave(key, ticket) {
        const guest = guests.get(ticket)
        const room = rooms.get(idOf(key))
        if (!guest || !room) return
        guests.delete(ticket)
        if (guest.inside) room.held--
        else room.line.delete(guest)
        serve(room)
        if (room.held === 0 && room.line.size === 0) rooms.delete(idOf(key))
      },
      resize(limit) {
        for (const guest of guests.values()) guest.limit = limit
        for (const room of new Set([...guests.values()].map((guest) => guest.room))) serve(room)
      },
      close() {},
    }
  }
}

interface Room {
  held: number
  /** Oldest first. */
  readonly line: Set<Guest>
}

interface Guest {
  readonly room: Room
  limit: number
  inside: boolean
  enter(): void
}

function serve(room: Room): void {
  for (const guest of room.line) {
    if (room.held >= guest.limit) return
    room.line.delete(guest)
    room.held++
    guest.inside = true
    guest.enter()
  }
}
