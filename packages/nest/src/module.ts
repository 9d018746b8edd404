import { ConfigurableModuleBuilder, type DynamicModule, Global, Module } from '@nestjs/common'
import { DiscoveryModule } from '@nestjs/core'
import { limiterToken } from './decorators.js'
import { RateLimitGuard } from './guard.js'
import { LimitMaker, MODULE_OPTIONS } from './limit-maker.js'
import { Limits } from './limits.js'
import { Nest11Gateways } from './nest-11.js'
import type { NamedLimiterOptions, RateLimitModuleOptions } from './options.js'

const OWN = [LimitMaker, Limits, RateLimitGuard, Nest11Gateways]

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<RateLimitModuleOptions>({
  optionsInjectionToken: MODULE_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRateLimitOptions')
  .build()

/**
 * Import `forRoot` or `forRootAsync` once, in the root module, and `forFeature` in modules that inject limiters. The
 * limiters that it makes share the store of `forRoot` (default: a memoryStore), and are closed with it when the application is.
 * @example
 * RateLimitModule.forRoot({ limits: [{ limit: 100, window: '1m' }] })
 */
@Global()
@Module({ imports: [DiscoveryModule], providers: OWN, exports: OWN })
export class RateLimitModule extends ConfigurableModuleClass {
  /**
   * Defines limiters by name, each a provider of Nest: `@InjectLimiter(name)` injects one, and `@RateLimit({ limiter:
   * name })` counts in it.
   */
  static forFeature(limiters: readonly NamedLimiterOptions[]): DynamicModule {
    const providers = limiters.map((options) => ({
      provide: limiterToken(options.name),
      useFactory: (maker: LimitMaker) => maker.define(options),
      inject: [LimitMaker],
    }))
    // Not this class, which would add another guard and other limits.
    return { module: class RateLimitFeature {}, providers, exports: providers }
  }
}
