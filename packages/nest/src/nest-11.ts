import { Inject, Injectable, type OnModuleInit, type Type } from '@nestjs/common'
import { APP_GUARD, DiscoveryService, MetadataScanner } from '@nestjs/core'
import { PolicyError } from '@sluice/core'
import { RateLimitGuard } from './guard.js'
import { LimitMaker } from './limit-maker.js'
import { Limits } from './limits.js'
import { IS_NEST_11 } from './nest-version.js'

const GATEWAY = 'websockets:is_gateway'
const MESSAGE_HANDLER = 'websockets:message_mapping'
const GUARDS = '__guards__'

/**
 * Nest 11 runs no global guards in gateways, so a limit there would never count, and a guard cannot be added from outside.
 * The application therefore does not start; the error says what to write.
 */
@Injectable()
export class Nest11Gateways implements OnModuleInit {
  /** `discovery` lists Nest's providers, the gateways and global guards among them; `maker` closes limits if the start fails. */
  constructor(
    @Inject(Limits) private readonly limits: Limits,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LimitMaker) private readonly maker: LimitMaker,
  ) {}

  /**
   * Checks all gateways (classes that serve WebSockets) when the application starts, if the guard is global and Nest is
   * version 11, which runs no global guard in gateways: limits there would silently never count.
   */
  onModuleInit(): void {
    if (!IS_NEST_11 || !this.#guardIsGlobal()) return
    for (const { metatype } of this.discovery.getProviders()) {
      if (typeof metatype === 'function' && Reflect.hasMetadata(GATEWAY, metatype))
        this.maker.starting(() => this.#check(metatype as Type))
    }
  }

  /**
   * Whether RateLimitGuard is registered as a global guard, by its class or an instance. Without that nobody expects it
   * to run in gateways.
   */
  #guardIsGlobal(): boolean {
    const global = this.discovery.getProviders().filter(({ token }) => String(token).startsWith(APP_GUARD))
    return global.some(({ metatype, instance }) => isOurs(metatype) || isOurs(instance))
  }

  /**
   * Checks the message handlers of a gateway (a class that serves WebSockets): each that has limits needs RateLimitGuard
   * by `@UseGuards`, on the method or on its class, or the limits would never count.
   * @throws {PolicyError} INVALID_OPTION for the first that has not.
   */
  #check(gateway: Type): void {
    const prototype = gateway.prototype as Record<string, object>
    for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
      const handler = prototype[name]!
      const counts =
        Reflect.hasMetadata(MESSAGE_HANDLER, handler) && this.limits.at(gateway, handler).asCall.length > 0
      if (counts && !isGuarded(gateway) && !isGuarded(handler)) {
        const message =
          `${gateway.name}.${name} has limits that would never count: Nest 11 runs no global guard in gateways. ` +
          `Put @UseGuards(RateLimitGuard) on ${gateway.name}, or @SkipRateLimit()`
        throw new PolicyError('INVALID_OPTION', message)
      }
    }
  }
}

/** Whether a class or a handler has RateLimitGuard, or a guard made of it, by the decorator UseGuards. */
function isGuarded(subject: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS, subject) as readonly unknown[] | undefined) ?? []
  return guards.some(isOurs)
}

/** Whether a guard is the class RateLimitGuard, one that extends it, or an instance of either. */
function isOurs(guard: unknown): boolean {
  const { prototype } = Object(guard) as { readonly prototype?: unknown }
  return guard === RateLimitGuard || [guard, prototype].some((each) => each instanceof RateLimitGuard)
}
